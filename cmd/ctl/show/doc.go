// Package show turns a Move into lines of text: a row of a table, a description, a display that is redrawn, a line of a
// log. It is pure: the time, the width and the colors are given.
//
// What never may live here: streams, clusters, logs.
package show

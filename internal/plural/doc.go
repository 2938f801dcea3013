// Package plural formats counts of things in a sentence.
//
// What never may live here: what the things are.
package plural

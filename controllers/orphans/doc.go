// Package orphans ends unfinished work in the log whose resource is gone. The controller of each
// kind defines what such work is, and how it ends.
package orphans

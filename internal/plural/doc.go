// Package plural formats counts of things in a sentence.
//
// This package never contains the names of the counted things.
package plural

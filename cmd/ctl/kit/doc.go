// Package kit implements the grammar VERB NOUN [NAME], and the verbs that all nouns share: get, describe, watch and logs. Options select where a
// command reads. A Noun defines how its objects are read and shown.
//
// This package never contains code for a single noun.
package kit

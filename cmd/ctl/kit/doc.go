// Package kit implements the grammar VERB NOUN [NAME], and the verbs that all nouns share. The
// verbs are get, describe, watch and logs. Options select where a command reads. A Noun defines how
// its objects are read and shown.
//
// What never may live here: anything of one noun.
package kit

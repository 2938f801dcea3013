// Package kit is what the commands of scutectl have in common: the grammar VERB NOUN [NAME], the options that say where a
// command reads, and the verbs get, describe, watch and logs, which are the same for every noun. A noun says in a Noun how
// its things are read and shown.
//
// What never may live here: anything of one noun.
package kit

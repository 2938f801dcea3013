// Package kit implements the grammar VERB NOUN [NAME], and the verbs that all nouns share: get,
// describe, watch and logs. A Noun defines how its objects are read, from their resources or from
// the event log alone, and how they are shown. A Domain describes the events of a kind of
// aggregates in words, a Filter selects events, and a View renders text.
//
// This package never contains how a single noun is shown.
package kit

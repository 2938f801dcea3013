// Package kit implements the grammar VERB NOUN [NAME], and the verbs that all nouns share: get,
// describe, watch and logs. A Noun defines how its objects are read and shown. They are read from
// their resources, or from the event log alone. A Filter selects events of the log. A domain
// describes the events of a kind of aggregates in words, and a View renders the text that the nouns
// share.
//
// This package never contains how a single noun is shown.
package kit

// Package view has the types in which a domain describes its part of the log to users: a Line is
// one event in words. Commands, pages and audit reports render lines, so that only the domain
// itself reads its events. It also formats counts and durations in a sentence.
//
// This package never knows a domain, and never formats for a terminal or for HTML.
package view

// Package ui implements `scutectl ui`, which serves pages about a log over HTTP to the local user who has the token.
//
// This package never contains the content of a page, and never changes an object.
package ui

// Package ui implements `scutectl ui`. It serves pages about a log over HTTP to the local user who
// has the token. It performs the actions of these pages with the user's credentials: it first shows
// the effect, and then calls the functions of scutectl's commands if the resource has not changed
// since.
//
// This package never contains the content of a page.
package ui

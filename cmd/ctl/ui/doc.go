// Package ui implements `scutectl ui`. It serves pages about a log over HTTP to the local user who
// has the token, and performs the actions that a page offers with the credentials of the user: it
// first shows the effect, then calls the functions of scutectl's commands if the resource has not
// changed since.
//
// This package never contains the content of a page.
package ui

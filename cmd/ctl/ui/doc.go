// Package ui implements `scutectl ui`, which serves pages about a log to the local user.
//
// What never may live here: what is on a page, and how anything is changed.
package ui

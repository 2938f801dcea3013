// Package ui implements `scutectl ui`, which serves pages about a log to the local user.
//
// This package never renders a page, and never changes an object.
package ui

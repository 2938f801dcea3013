// Package act makes what a page of scutectl ui asks for: it looks at the resource, says what would happen, and does it with the functions
// of scutectl's commands, with the user's own credentials, if the resource is still the one that was looked at.
//
// What never may live here: HTTP, and how anything is shown.
package act

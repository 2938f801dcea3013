// Package act performs the actions of scutectl ui with the user's credentials. It first shows the
// effect, then calls the functions of scutectl's commands if the resource has not changed since.
//
// What never may live here: HTTP, and how anything is shown.
package act

// Package act performs the actions of scutectl ui with the user's credentials. It first shows the effect, then calls the functions of scutectl's
// commands if the resource has not changed since.
//
// This package never contains HTTP or rendering.
package act

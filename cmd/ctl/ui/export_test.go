package ui

// NewHandler is newHandler, for tests that need the whole program.
var NewHandler = newHandler

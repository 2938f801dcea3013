// Package domain lists the domains of the log, and describes their events in words. A domain that is added to its list appears in every command and
// on every page. It is pure.
package domain

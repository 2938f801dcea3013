// Package runner joins the log, the pure core (package remediator), the look at the world (an Eye) and the writes (a Hand).
// A turn is one look at one owner: facts, what follows from them, the log, the writes that are due. Turns come from watches;
// a turn that finds nothing new costs no request. An owner is claimed by an event before anything is written for it, so that
// a leader who was replaced can append nothing more and lets go.
//
// What never may live here: rules, and Kubernetes.
package runner

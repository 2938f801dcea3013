// Package hold writes pauses: it sets one on a root, and puts back exactly what was found there. Each write names the
// object's UID, so that a namesake is never touched.
//
// A root that scute holds bears the holder's id in an annotation: scute.dev/move for a move, scute.dev/pause for a task
// of a run. The mark and the pause are one write:
// who finds another's mark keeps off, and who finds none of his own has nothing to put back.
//
// What never may live here: the rules of who must acknowledge (package pause).
package hold

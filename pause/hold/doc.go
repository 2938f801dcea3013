// Package hold writes pauses: it sets one on a root, and puts back exactly what was found there. Each write names the
// object's UID, so that a namesake is never touched.
//
// A root that scute holds bears the holder's id in an annotation: scute.dev/move for a move, scute.dev/pause for a task
// of a run. The mark and the pause are one write:
// who finds another's mark keeps off, and who finds none of his own has nothing to put back.
//
// Writer writes the pauses of many roots at once, and wakes controllers. Pause is a whole acknowledged pause for its own sake:
// look, set, acknowledged, restore, asleep. Which objects belong to its Clusters is told by a Graph, which mover/transfer has.
//
// What never may live here: the rules of who must acknowledge (package pause).
package hold

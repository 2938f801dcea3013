// Package hold sets a pause on a root object, and restores its earlier state. Each write names the
// object's UID, so that another object with the same name is never changed.
//
// A root that scute paused has the holder's ID in an annotation: scute.dev/move for a move,
// scute.dev/pause for a task of a run, scute.dev/pause.UID for a Pause. The annotation and the
// pause are set in one write, so a holder whose annotation is missing has nothing to restore. A
// move is the only holder of a root. Any number of Pauses and one task of a run can hold a root
// together: the first holder records the earlier state in annotation scute.dev/paused-before, and
// the last one restores it.
//
// Switch pauses one object by a field or an annotation: roots, and the objects of Flux and EKS
// Anywhere that tasks of runs pause. Writer writes the pauses of many roots concurrently, and
// notifies controllers. Pause is a complete acknowledged pause: Inspect, Set, Evaluate, Restore,
// StillPaused. Graph finds the objects of its Clusters; mover/transfer implements it.
//
// This package never decides which objects must acknowledge (package pause).
package hold

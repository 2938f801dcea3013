package mover

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
)

// LostObject is an object that the garbage collector deletes at the source after a move, because
// its owners are deleted there.
type LostObject struct {
	Ref object.Ref
	// Owner is an owner of the object that moves.
	Owner object.Ref
	// Dependents contains the direct and indirect dependants of the object, which are deleted too.
	Dependents []object.Ref
}

// GarbageCollected returns the objects that the garbage collector deletes after the members that
// move are deleted at the source. seen contains all known objects; an owner that is not in seen
// counts as deleted. Like the garbage collector, it keeps an object if one of its owners stays.
func GarbageCollected(members []Member, seen []object.Observed) []LostObject {
	leaving := make(map[types.UID]object.Ref, len(members))
	var queue []types.UID
	for _, m := range members {
		if m.KeepReason == "" {
			leaving[m.UID] = m.Ref
			queue = append(queue, m.UID)
		}
	}
	stays := make(map[types.UID]bool, len(seen))
	owned := make(map[types.UID][]*object.Observed)
	for i, o := range seen {
		if _, ok := leaving[o.UID]; ok || stays[o.UID] {
			continue // a member, or the same object of another API group
		}
		stays[o.UID] = true
		for _, owner := range o.Owners {
			owned[owner.UID] = append(owned[owner.UID], &seen[i])
		}
	}
	var lost []LostObject
	top := make(map[types.UID]int) // index in lost, by the UID of a deleted object
	for ; len(queue) > 0; queue = queue[1:] {
		for _, o := range owned[queue[0]] {
			if !stays[o.UID] || slices.ContainsFunc(o.Owners, func(owner object.Owner) bool { return stays[owner.UID] }) {
				continue
			}
			stays[o.UID] = false
			queue = append(queue, o.UID)
			i := slices.IndexFunc(o.Owners, func(owner object.Owner) bool { return leaving[owner.UID] != object.Ref{} })
			if i >= 0 {
				top[o.UID] = len(lost)
				lost = append(lost, LostObject{Ref: o.Ref, Owner: leaving[o.Owners[i].UID]})
				continue
			}
			top[o.UID] = top[queue[0]]
			lost[top[o.UID]].Dependents = append(lost[top[o.UID]].Dependents, o.Ref)
		}
	}
	slices.SortFunc(lost, func(a, b LostObject) int { return object.Compare(a.Ref, b.Ref) })
	return lost
}

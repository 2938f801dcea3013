package mover

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
)

// Lost represents an object that the garbage collector removes from the source after a move, because its owners were deleted there.
type Lost struct {
	Ref object.Ref
	// Owner is the moving object that owns it.
	Owner object.Ref
	// Below are its direct and indirect dependants, which are removed with it.
	Below []object.Ref
}

// Collected returns the objects that the garbage collector removes once all members that leave the source are deleted there. seen holds all
// known objects. Each object that a leaving member owns has an entry, and its dependants are in Below. Like the garbage collector, Collected
// omits an object if one of its owners stays. An owner that is not in seen counts as deleted.
func Collected(members []Member, seen []object.Observed) []Lost {
	leaving := make(map[types.UID]object.Ref, len(members))
	var queue []types.UID
	for _, m := range members {
		if m.Keep == "" {
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
	var lost []Lost
	top := make(map[types.UID]int) // the index in lost, by the UID of a removed object
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
				lost = append(lost, Lost{Ref: o.Ref, Owner: leaving[o.Owners[i].UID]})
				continue
			}
			top[o.UID] = top[queue[0]]
			lost[top[o.UID]].Below = append(lost[top[o.UID]].Below, o.Ref)
		}
	}
	slices.SortFunc(lost, func(a, b Lost) int { return object.Compare(a.Ref, b.Ref) })
	return lost
}

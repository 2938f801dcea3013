package mover

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
)

// Item describes an object of the plan, as it was read from the source after every controller was
// paused.
type Item struct {
	Ref             object.Ref `json:"ref"`
	Version         string     `json:"version"`
	UID             types.UID  `json:"uid"`
	ResourceVersion string     `json:"resourceVersion"`
	// Hash is the hash of the copied content; empty for a Secret, whose changes only
	// ResourceVersion shows.
	Hash string `json:"hash,omitempty"`
	// Level is 0 if there are no Owners, and otherwise higher than the levels of all Owners.
	// Objects are created in the order of their levels.
	Level int `json:"level"`
	// Owners contains the owners that are in the plan too. References to other owners are not
	// copied.
	Owners  []object.Owner `json:"owners,omitempty"`
	Cluster string         `json:"cluster,omitempty"`
	// PausedByUser means that the object itself has the paused annotation of a user.
	PausedByUser bool `json:"pausedByUser,omitempty"`
	// KeepReason is why the object is copied but not deleted at the source; empty if it is deleted
	// there.
	KeepReason string `json:"keepReason,omitempty"`
}

// Levels groups the plan by level, owners first.
func Levels(plan []Item) [][]Item {
	var levels [][]Item
	for _, item := range plan {
		for len(levels) <= item.Level {
			levels = append(levels, nil)
		}
		levels[item.Level] = append(levels[item.Level], item)
	}
	return levels
}

// PlanHash returns a hash of the items of a plan and their order.
func PlanHash(plan []Item) (string, error) {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, item := range plan {
		if err := enc.Encode(item); err != nil {
			return "", fmt.Errorf("hashing the plan at %s: %w", item.Ref, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// ItemOf returns the item of a member.
func ItemOf(m Member, hash string) Item {
	return Item{
		Ref: m.Ref, Version: m.Version, UID: m.UID, ResourceVersion: m.ResourceVersion, Hash: hash,
		Level: m.Level, Owners: m.MemberOwners, Cluster: m.OwningCluster, PausedByUser: m.PausedByUser, KeepReason: m.KeepReason,
	}
}

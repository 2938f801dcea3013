package mover

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
)

// Item is an object of the plan, as read from the source after all controllers were paused.
type Item struct {
	Ref             object.Ref `json:"ref"`
	Version         string     `json:"version"`
	UID             types.UID  `json:"uid"`
	ResourceVersion string     `json:"resourceVersion"`
	// Hash is the hash of the copied content. It is empty for a Secret, whose changes only ResourceVersion shows.
	Hash string `json:"hash,omitempty"`
	// Level is 0 for objects without owners in the plan. Owners are created before their dependants.
	Level int `json:"level"`
	// Owners are the owners within the plan. References to other owners are not copied.
	Owners []object.Owner `json:"owners,omitempty"`
	// Cluster is the name of its Cluster, if any.
	Cluster string `json:"cluster,omitempty"`
	// PausedByUser means that the object itself has a user's paused annotation.
	PausedByUser bool `json:"pausedByUser,omitempty"`
	// KeepReason is why the object is copied and also stays at the source; empty if it is deleted there.
	KeepReason string `json:"keepReason,omitempty"`
}

// Levels returns the plan's items by level, owners first.
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

// PlanHash returns a hash that identifies a plan: the same objects with the same content in the
// same order have the same hash.
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

// ItemOf returns the item of a member with the hash of its content.
func ItemOf(m Member, hash string) Item {
	return Item{
		Ref: m.Ref, Version: m.Version, UID: m.UID, ResourceVersion: m.ResourceVersion, Hash: hash,
		Level: m.Level, Owners: m.MemberOwners, Cluster: m.OwningCluster, PausedByUser: m.PausedByUser, KeepReason: m.KeepReason,
	}
}

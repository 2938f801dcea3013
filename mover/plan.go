package mover

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
)

// Item is one object of the plan, as it was on the source when all controllers were paused.
type Item struct {
	Ref             object.Ref `json:"ref"`
	Version         string     `json:"version"`
	UID             types.UID  `json:"uid"`
	ResourceVersion string     `json:"resourceVersion"`
	// Hash of the content that travels; empty for a Secret, which ResourceVersion alone watches over.
	Hash string `json:"hash,omitempty"`
	// Level is 0 for objects without owners in the plan; owners are created before what they own.
	Level int `json:"level"`
	// Owners within the plan. Owners outside it do not travel.
	Owners []object.Owner `json:"owners,omitempty"`
	// Cluster is the name of the cluster it belongs to, if any.
	Cluster string `json:"cluster,omitempty"`
	// Held: a user's paused annotation is on the object itself.
	Held bool `json:"held,omitempty"`
	// Keep says why the object is copied and stays at the source too; empty when it is deleted there.
	Keep string `json:"keep,omitempty"`
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

// PlanHash identifies a plan: the same objects with the same content in the same order give the same hash.
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

// ItemOf makes a plan's item of a member and the hash of its content.
func ItemOf(m Member, hash string) Item {
	return Item{
		Ref: m.Ref, Version: m.Version, UID: m.UID, ResourceVersion: m.ResourceVersion, Hash: hash,
		Level: m.Level, Owners: m.Within, Cluster: m.ClusterOf, Held: m.PausedByUser, Keep: m.Keep,
	}
}

package archive

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube/document"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

// clusterctlFiles matches the files of clusterctl move --to-directory: one for each object, in
// plain text, without an index.
const clusterctlFiles = "*_*_*.yaml"

// listClusterctlFiles returns the paths of the object files in a folder that clusterctl wrote, or
// none if another program wrote the folder.
func listClusterctlFiles(dir string) ([]string, error) {
	there, err := os.ReadDir(dir) // not Glob, because the folder's name may contain special characters
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range there {
		if slices.Contains([]string{SumsFile, unfinishedFile, IndexFile}, e.Name()) {
			return nil, nil
		}
		if its, err := filepath.Match(clusterctlFiles, e.Name()); err != nil || its {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, nil
}

// openClusterctl reads a folder that clusterctl wrote, and orders the objects as a Move does. The
// folder does not record whether it is complete. openClusterctl therefore returns an error if an
// object refers to one that is not in the folder.
func openClusterctl(dir string, files []string) (*Archive, error) {
	slices.Sort(files)
	index := &Index{Version: Version, All: true, Program: "clusterctl"}
	objects := make(map[object.Ref]*unstructured.Unstructured, len(files))
	all := sha256.New()
	var world []object.Observed
	for _, file := range files {
		data, at, err := readFile(file)
		if err != nil {
			return nil, err
		}
		u, err := clusterctlObject(file, data)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(all, "%x %s\n", sha256.Sum256(data), filepath.Base(file))
		if at.After(index.TakenAt) {
			index.TakenAt = at
		}
		o := object.Observe(u)
		o.Movable, o.Hierarchy = true, o.Hierarchy || o.Ref.Namespace == "" // clusterctl has selected it
		world, objects[o.Ref] = append(world, o), u
		if pause.IsCluster(o.Ref) {
			index.Clusters = append(index.Clusters, o.Ref.Name)
			if index.Namespace = cmp.Or(index.Namespace, o.Ref.Namespace); index.Namespace != o.Ref.Namespace {
				return nil, fmt.Errorf("folder %s has Clusters of namespaces %s and %s: put the objects of each namespace into a separate folder", dir,
					index.Namespace, o.Ref.Namespace)
			}
		}
	}
	if len(index.Clusters) == 0 {
		return nil, fmt.Errorf("folder %s has no Cluster", dir)
	}
	index.ID = hex.EncodeToString(all.Sum(nil))[:32]
	members := mover.Select(world, mover.Selection{Namespace: index.Namespace, All: true})
	if err := checkComplete(dir, members, len(world)); err != nil {
		return nil, err
	}
	index.Hosted = members.Hosted
	for _, m := range members.Objects {
		index.Objects = append(index.Objects, Entry{Item: mover.ItemOf(m, ""), ReportsPause: m.Paused != object.Absent})
	}
	return &Archive{Index: index, read: func(ref object.Ref) (*unstructured.Unstructured, error) {
		return objects[ref].DeepCopy(), nil
	}}, index.check()
}

func readFile(file string) ([]byte, time.Time, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, time.Time{}, err
	}
	data, err := os.ReadFile(file) //nolint:gosec // in the folder that the user names
	return data, info.ModTime(), err
}

// clusterctlObject decodes and checks an object. It removes the pause that clusterctl set during
// the backup, which cannot be a user's, because clusterctl does not back up a cluster that a user
// had paused.
func clusterctlObject(file string, data []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	err := document.Unmarshal(data, u)
	if errors.Is(err, document.ErrTooLarge) {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s contains no object", ErrDamaged, file) // the cause may quote a key, so it is omitted
	}
	ref := object.RefOf(u)
	if name := strings.Join([]string{ref.Kind, ref.Namespace, ref.Name}, "_") + ".yaml"; name != filepath.Base(file) {
		return nil, fmt.Errorf("%w: %s contains %s, which does not match the file name", ErrDamaged, file, ref)
	}
	if u.GetUID() == "" || u.GetResourceVersion() == "" {
		return nil, fmt.Errorf("%w: %s has no UID or no resource version: clusterctl move --to-directory writes both", ErrDamaged, file)
	}
	if u.GetDeletionTimestamp() != nil {
		return nil, fmt.Errorf("%s was being deleted: a restore would create it again; create a backup without it", ref)
	}
	switch {
	case pause.IsCluster(ref):
		unstructured.RemoveNestedField(u.Object, "spec", "paused")
	case pause.IsRoot(ref):
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", object.PausedAnnotation)
	}
	return u, nil
}

func checkComplete(dir string, members mover.Members, files int) error {
	var errs []error
	for _, left := range members.Excluded {
		errs = append(errs, fmt.Errorf("%s would not be restored: %s", left.Ref, left.Reason))
	}
	if n := files - len(members.Objects) - len(members.Excluded); n > 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("%d objects belong to no Cluster in the folder", n))
	}
	for _, f := range members.Findings {
		if f.Severity == mover.Error {
			errs = append(errs, fmt.Errorf("%s: %s", f.Field, f.Message))
		}
	}
	for _, d := range members.DroppedOwners {
		errs = append(errs, fmt.Errorf("%s: %s", d.Ref, d.Reason))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("folder %s is incomplete: %w", dir, err)
	}
	return nil
}

package leak

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Scan looks for the material in all that scute's daemons wrote below a folder: the files of event logs, which have their events as they
// are, with the snapshots and the hashes beside them, and the log lines of daemons. Each finding says where it is. read is the number of bytes.
func (m *Material) Scan(root string) (findings []string, read int64, err error) {
	logs, err := eventLogs(root)
	if err != nil {
		return nil, 0, err
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !written(path, logs) {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read += int64(len(data))
		for _, what := range m.In(data) {
			findings = append(findings, fmt.Sprintf("%s has %s", path, what))
		}
		return nil
	})
	if err != nil {
		return findings, read, fmt.Errorf("looking for secrets in %s: %w", root, err)
	}
	return findings, read, nil
}

// eventLogs are the folders of event logs below another one.
func eventLogs(root string) (dirs []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "jetstream" {
			dirs = append(dirs, filepath.Dir(path)+string(filepath.Separator))
			return filepath.SkipDir
		}
		return err
	})
	return dirs, err
}

// written says whether a file is of an event log, or has the log lines of a daemon.
func written(path string, logs []string) bool {
	if name := filepath.Base(path); strings.HasPrefix(name, "scuted") && strings.HasSuffix(name, ".log") {
		return true
	}
	for _, dir := range logs {
		if strings.HasPrefix(path, dir) {
			return true
		}
	}
	return false
}

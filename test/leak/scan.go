package leak

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Scan searches everything that scute's daemons wrote below a folder for the material: the files of event logs, with
// their snapshots and hashes, and the log lines of daemons. Each finding has its location. read is the number of bytes.
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

// eventLogs returns the folders of the event logs below a folder.
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

// written reports whether a file belongs to an event log, or has the log lines of a daemon.
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

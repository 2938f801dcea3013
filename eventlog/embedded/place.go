package embedded

import (
	"fmt"
	"os"
	"path/filepath"

	"scute.dev/eventlog"
)

// account is the NATS account of the log.
const account = "$G"

// logFiles is the identity of the files of an embedded log. If its files are removed, the server continues to write and acknowledges commits that can
// never be read. Comparing the files by name detects that.
type logFiles struct {
	dir   string
	infos map[string]os.FileInfo
}

// findLogFiles records the files of an open log: the watermark and the folder of the stream's messages.
func findLogFiles(dir, stream string) (*logFiles, error) {
	p := &logFiles{dir: dir, infos: make(map[string]os.FileInfo)}
	for _, path := range []string{filepath.Join(dir, watermarkFile), messagesOf(dir, stream)} {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("checking the files of the log: %w", err)
		}
		p.infos[path] = info
	}
	return p, nil
}

// messagesOf returns the folder of a stream's messages.
func messagesOf(dir, stream string) string {
	return filepath.Join(dir, serverFolder, account, "streams", stream, "msgs")
}

// check returns ErrMissing if the files were removed, moved or replaced. On a nil place (the log is being opened) it does nothing.
func (p *logFiles) check() error {
	if p == nil {
		return nil
	}
	for path, was := range p.infos {
		if info, err := os.Stat(path); err != nil || !os.SameFile(was, info) {
			return fmt.Errorf("%w any longer: %s was removed or replaced while the log was open: "+
				"later events are not recorded, so check what was done before you start again", eventlog.ErrMissing, path)
		}
	}
	return nil
}

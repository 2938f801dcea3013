package embedded

import (
	"fmt"
	"os"
	"path/filepath"

	"scute.dev/eventlog"
)

// account is the server's account that the log is in.
const account = "$G"

// place is where an embedded log is on its disk. The server continues to write after its files were removed, and
// acknowledges commits that can never be read. The names of the files reveal this.
type place struct {
	dir   string
	files map[string]os.FileInfo
}

// findPlace remembers the files of an open log: the watermark, and the folder that the server keeps the stream's messages in.
func findPlace(dir, stream string) (*place, error) {
	p := &place{dir: dir, files: make(map[string]os.FileInfo)}
	for _, path := range []string{filepath.Join(dir, watermarkFile), messagesOf(dir, stream)} {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("looking at the files of the log: %w", err)
		}
		p.files[path] = info
	}
	return p, nil
}

// messagesOf is where the server keeps the messages of a stream.
func messagesOf(dir, stream string) string {
	return filepath.Join(dir, serverFolder, account, "streams", stream, "msgs")
}

// check fails with ErrMissing when the files have been removed, moved or replaced. On a nil place (the log is
// being opened) it does nothing.
func (p *place) check() error {
	if p == nil {
		return nil
	}
	for path, was := range p.files {
		if info, err := os.Stat(path); err != nil || !os.SameFile(was, info) {
			return fmt.Errorf("%w any more: %s was removed or replaced while the log was open: "+
				"what has happened since is not recorded, look at what was done before you begin again", eventlog.ErrMissing, path)
		}
	}
	return nil
}

package process

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// Folder is a temporary folder that is removed when it is closed, or when this process ends without closing it.
type Folder struct {
	Path string

	keeper *exec.Cmd
	life   io.WriteCloser
}

// keep reads until the other end of its standard input is closed. The kernel closes it when the owner ends, for any
// reason. A line means that the folder must be kept. It retries, because children of the owner may not have ended yet.
const keep = `if read -r line; then exit 0; fi
i=0
while [ $i -lt 50 ] && ! rm -rf -- "$0" 2>/dev/null; do i=$((i+1)); sleep 0.1; done`

// NewFolder creates a folder in the system's directory for temporary files, with a name that begins with prefix.
func NewFolder(prefix string) (*Folder, error) {
	path, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, fmt.Errorf("making a temporary folder: %w", err)
	}
	f := &Folder{Path: path, keeper: exec.Command("/bin/sh", "-c", keep, path)}
	f.keeper.Dir = "/"
	f.keeper.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // must outlive its parent, also on Ctrl-C
	f.life, err = f.keeper.StdinPipe()
	if err == nil {
		err = f.keeper.Start()
	}
	if err != nil {
		os.RemoveAll(path)
		return nil, fmt.Errorf("starting the keeper of the temporary folder: %w", err)
	}
	return f, nil
}

// Close removes the folder, or keeps it if keep is true.
func (f *Folder) Close(keep bool) error {
	if keep {
		if _, err := io.WriteString(f.life, "keep\n"); err != nil {
			return fmt.Errorf("keeping %s: %w", f.Path, err)
		}
	}
	f.life.Close()
	if err := f.keeper.Wait(); err != nil {
		return fmt.Errorf("removing %s: %w", f.Path, err)
	}
	if keep {
		return nil
	}
	if err := os.RemoveAll(f.Path); err != nil {
		return fmt.Errorf("removing %s: %w", f.Path, err)
	}
	return nil
}

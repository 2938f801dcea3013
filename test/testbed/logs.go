package testbed

import (
	"bytes"
	"fmt"
	"io"
	"log" //nolint:depguard // what libraries write there is to end up in a file
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
)

// openLog returns a logger that writes to a new file, and the file.
func openLog(path string) (logr.Logger, *os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return logr.Discard(), nil, fmt.Errorf("opening a log: %w", err)
	}
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(file), textlogger.Verbosity(2))), file, nil
}

// redirectLogs writes the process-wide logs of libraries to a file, and returns a function that restores the loggers.
func redirectLogs(path string) (restore func(), err error) {
	logger, file, err := openLog(path)
	if err != nil {
		return nil, err
	}
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	standard := log.Writer()
	log.SetOutput(&diverter{noise: file, rest: standard})
	return func() {
		ctrl.SetLogger(logr.Discard())
		klog.ClearLogger()
		log.SetOutput(standard)
		file.Close()
	}, nil
}

// diverter removes the frequent messages of the in-memory API servers' HTTP server from the standard logger's output.
type diverter struct {
	noise, rest io.Writer
}

func (d *diverter) Write(line []byte) (int, error) {
	for _, mark := range []string{"http: superfluous response.WriteHeader", "http: TLS handshake error"} {
		if bytes.Contains(line, []byte(mark)) {
			return d.noise.Write(line)
		}
	}
	return d.rest.Write(line)
}

package testbed

import (
	"fmt"
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

// redirectLogs sends what libraries log process-wide to a file. The file stays open: they may log at any time.
func redirectLogs(path string) error {
	log, _, err := openLog(path)
	if err != nil {
		return err
	}
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	return nil
}

func restoreLogs() {
	ctrl.SetLogger(logr.Discard())
	klog.ClearLogger()
}

package observe

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// serveExec serves one request to run a command in a container over SPDY, as a kubelet does. run
// returns the exit code. It supports neither standard input nor a terminal.
func serveExec(w http.ResponseWriter, r *http.Request, run func(command []string, stdout, stderr io.Writer) int) {
	if _, err := httpstream.Handshake(r, w, []string{remotecommand.StreamProtocolV4Name}); err != nil {
		return // the response was sent
	}
	const most = 3
	opened := make(chan httpstream.Stream, most)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		select {
		case opened <- s:
			return nil
		default:
			return fmt.Errorf("more than %d streams", most)
		}
	})
	if conn == nil {
		return // the response was sent
	}
	defer conn.Close()
	streams := map[string]io.WriteCloser{}
	for range most { // the streams for the status, stdout and stderr; there is no stdin
		select {
		case s := <-opened:
			streams[s.Headers().Get(corev1.StreamType)] = s
		case <-conn.CloseChan():
			return
		}
	}
	status, stdout, stderr := streams[corev1.StreamTypeError], streams[corev1.StreamTypeStdout], streams[corev1.StreamTypeStderr]
	if status == nil || stdout == nil || stderr == nil {
		return
	}
	code := run(r.URL.Query()["command"], stdout, stderr)
	stdout.Close()
	stderr.Close()
	if err := json.NewEncoder(status).Encode(execStatus(code)); err != nil {
		return
	}
	status.Close()
	<-conn.CloseChan() // the client closes the connection when it has read everything
}

func execStatus(code int) metav1.Status {
	if code == 0 {
		return metav1.Status{Status: metav1.StatusSuccess}
	}
	return metav1.Status{
		Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason, Message: fmt.Sprintf("command terminated with exit code %d", code),
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(code)}}},
	}
}

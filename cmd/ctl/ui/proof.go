package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"scute.dev/ui/feed"
	"scute.dev/ui/page"
)

const proofPath = "/proof"

// proofTime limits the creation of a proof. It is long, because a proof reads the log from its
// beginning.
const proofTime = 2 * time.Minute

func (h *handler) proof(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query().Get("commit")
	seq, err := strconv.ParseUint(asked, 10, 63)
	if err != nil {
		h.write(w, http.StatusOK, nil, fmt.Errorf("%w: commit is %q: it must be the sequence of a commit", page.ErrQuery, asked))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), proofTime)
	defer cancel()
	proof, wrong := h.site.Prove(ctx, seq)
	if errors.Is(wrong, feed.ErrNotFound) {
		h.write(w, http.StatusOK, nil, wrong)
		return
	}
	if r.URL.Query().Get("as") == "file" && wrong == nil {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", page.ProofFile(seq)))
		_, _ = w.Write(proof.Text) // a disconnected client reads no error
		return
	}
	body, err := h.site.Proof(seq, proof, wrong)
	h.write(w, http.StatusOK, body, err)
}

package httprequest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"scute.dev/internal/redact"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Kind makes one request and checks the response. It follows redirects only on the same host. It
// sends the key of the task as Idempotency-Key, which is the same in all attempts.
//
// A status of 400 to 499 is final, except for 408 and 429. After any other unexpected response the
// task may be retried. In the daemon it cannot reach the daemon's machine or link-local addresses.
// The manifest defines the inverse: `undo: {kind: HTTP, with: {...}}`.
type Kind struct {
	Clusters *access.Clusters
}

// With are the inputs of HTTP.
type With struct {
	// Method is GET by default.
	Method string `json:"method,omitempty"`
	// URL is an http or https URL without a password or a key.
	URL string `json:"url"`
	// Headers that are not secret.
	Headers map[string]string `json:"headers,omitempty"`
	// HeadersFrom are headers with values from Secrets.
	HeadersFrom []HeaderFrom `json:"headersFrom,omitempty"`
	// QueryFrom are parameters of the URL's query with values from Secrets.
	QueryFrom []QueryFrom `json:"queryFrom,omitempty"`
	// Body is sent unchanged if it is a string, and as JSON otherwise.
	Body json.RawMessage `json:"body,omitempty"`
	// Expect is the expected answer. Default: any status from 200 to 299.
	Expect HTTPExpect `json:"expect,omitzero"`
}

// HeaderFrom is a header whose value is in a Secret of the run's namespace on the run's cluster.
type HeaderFrom struct {
	// Name of the header, for example Authorization.
	Name string `json:"name"`
	// Prefix is put before the value, for example "Bearer ".
	Prefix    string           `json:"prefix,omitempty"`
	SecretRef access.SecretKey `json:"secretRef"`
}

// QueryFrom is a parameter of the URL's query whose value is in a Secret of the run's namespace on the run's cluster.
type QueryFrom struct {
	// Name of the parameter, for example token.
	Name      string           `json:"name"`
	SecretRef access.SecretKey `json:"secretRef"`
}

// HTTPExpect is the expected answer.
type HTTPExpect struct {
	Status []int `json:"status,omitempty"`
	// BodyContains is a text that the body must contain.
	BodyContains string `json:"bodyContains,omitempty"`
}

const (
	httpTimeout    = 5 * time.Minute
	httpBodyLimit  = 1 << 20
	httpBodyOutput = 16 << 10
	httpBodyError  = 300
)

type output struct {
	Status int `json:"status"`
	// Body is the body of a JSON response of up to 16 KiB.
	Body json.RawMessage `json:"body,omitempty"`
}

// Validate checks the inputs.
func (*Kind) Validate(with json.RawMessage) []workflow.Problem {
	w, problems := task.Decode[With](with)
	if len(problems) > 0 {
		return problems
	}
	u, err := url.Parse(w.URL)
	if !task.HasReferences(w.URL) && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		problems.Add("url", "it is not an http or https URL", "write the full URL, for example https://api.example.com/v1/things")
	} else {
		problems = append(problems, checkURLSecrets(w.URL)...)
	}
	for _, name := range slices.Sorted(maps.Keys(w.Headers)) {
		if redact.IsSecretName(name) && w.Headers[name] != "" {
			problems = append(problems, task.SecretProblem("headers."+name, "it contains a secret", "use headersFrom with a Secret"))
		}
	}
	for i, q := range w.QueryFrom {
		if q.Name == "" || q.SecretRef.Name == "" {
			problems.Add(fmt.Sprintf("queryFrom[%d]", i), "name or secretRef.name is empty", "set both")
		}
	}
	for i, h := range w.HeadersFrom {
		if h.Name == "" || h.SecretRef.Name == "" {
			problems.Add(fmt.Sprintf("headersFrom[%d]", i), "name or secretRef.name is empty", "set both")
		}
	}
	for i, status := range w.Expect.Status {
		if status < 100 || status > 599 {
			problems.Add(fmt.Sprintf("expect.status[%d]", i), fmt.Sprintf("%d is not an HTTP status", status), "use 100 to 599")
		}
	}
	return problems
}

// checkURLSecrets checks a URL for secrets. It checks it twice, with defaults and with placeholders
// in place of references to outputs, because a reference may hide the text after it.
func checkURLSecrets(templated string) []workflow.Problem {
	literal := task.FillDefaults(templated)
	outputs := workflow.ReplaceReferences(templated, func(workflow.Reference) string { return outputPlaceholder })
	_, user := userOf(literal)
	given, _ := userOf(outputs)
	if user || strings.Contains(given, ":"+outputPlaceholder) || strings.Contains(given, outputPlaceholder+":") {
		return []workflow.Problem{task.SecretProblem("url", "it contains a user", "use headersFrom with a Secret")}
	}
	for _, u := range []string{literal, outputs} {
		if problems := checkQuerySecrets(u); len(problems) > 0 {
			return problems
		}
	}
	return nil
}

const outputPlaceholder = "${}"

// userOf returns the userinfo of a URL: the user and the password.
func userOf(u string) (user string, ok bool) {
	u, _, _ = strings.Cut(u, "#")
	u, _, _ = strings.Cut(u, "?")
	if _, rest, whole := strings.Cut(u, "://"); whole {
		u = rest
	}
	host, _, _ := strings.Cut(u, "/")
	at := strings.LastIndexByte(host, '@')
	return host[:max(at, 0)], at >= 0
}

func checkQuerySecrets(u string) []workflow.Problem {
	var problems []workflow.Problem
	u, _, _ = strings.Cut(u, "#")
	_, query, _ := strings.Cut(u, "?")
	for parameter := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(parameter, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		if redact.IsSecretName(name) && value != "" {
			problems = append(problems, task.SecretProblem("url", "its parameter "+name+" contains a secret", "use queryFrom with a Secret"))
		}
	}
	return problems
}

// Run makes the request once.
func (h *Kind) Run(ctx context.Context, c *task.Call) (json.RawMessage, error) {
	with, err := task.ReadInputs[With](c, h.Validate)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, httpTimeout)
	defer cancel()
	request, secrets, err := h.request(ctx, c, &with)
	if err != nil {
		return nil, err
	}
	client := h.Clusters.HTTPClient()
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return nil, access.RequestError(request, err)
	}
	defer response.Body.Close()
	body, err := readBody(response.Body, with.Expect.BodyContains)
	if err != nil {
		return nil, access.RequestError(request, err)
	}
	body.removeSecrets(secrets) // a response may repeat parts of the request
	if err := with.Expect.check(response, body, h.Clusters.IsLocal()); err != nil {
		return nil, fmt.Errorf("%s: %w", access.DescribeRequest(request), err)
	}
	out := output{Status: response.StatusCode}
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); (kind == "application/json" || strings.HasSuffix(kind, "+json")) &&
		!body.truncated && len(body.beginning) <= httpBodyOutput && json.Valid(body.beginning) {
		out.Body = body.beginning
	}
	return json.Marshal(out)
}

// request returns the request, and the secrets that it contains. These must be removed from the
// response.
func (h *Kind) request(ctx context.Context, c *task.Call, with *With) (request *http.Request, secrets [][]byte, err error) {
	body := []byte(with.Body)
	kind := "application/json"
	if len(body) > 0 && body[0] == '"' {
		var text string
		if err := json.Unmarshal(body, &text); err != nil {
			return nil, nil, task.Final(fmt.Errorf("with.body: %w", err))
		}
		body, kind = []byte(text), "text/plain; charset=utf-8"
	}
	request, err = http.NewRequestWithContext(ctx, cmp.Or(with.Method, http.MethodGet), with.URL, bytes.NewReader(body))
	if err != nil {
		return nil, nil, task.Final(fmt.Errorf("with: %w", err))
	}
	request.Header.Set("User-Agent", "scute")
	request.Header.Set("Idempotency-Key", c.RequestKey())
	if len(body) > 0 {
		request.Header.Set("Content-Type", kind)
	}
	for name, value := range with.Headers {
		request.Header.Set(name, value)
		if strings.EqualFold(name, "Host") {
			request.Host = value
		}
	}
	secret := func(field string, ref *access.SecretKey) (string, error) {
		if h.Clusters == nil {
			return "", task.Final(fmt.Errorf("with.%s: there is no cluster to read the Secret from", field))
		}
		value, err := h.Clusters.ReadKey(ctx, c, "Secret", ref)
		if err != nil {
			return "", fmt.Errorf("with.%s.secretRef: %w", field, err)
		}
		if value = bytes.TrimSpace(value); len(value) > 0 {
			secrets = append(secrets, value)
		}
		return string(value), nil
	}
	for i, from := range with.HeadersFrom {
		value, err := secret(fmt.Sprintf("headersFrom[%d]", i), &from.SecretRef)
		if err != nil {
			return nil, nil, err
		}
		request.Header.Set(from.Name, from.Prefix+value)
	}
	query := request.URL.Query()
	for i, from := range with.QueryFrom {
		value, err := secret(fmt.Sprintf("queryFrom[%d]", i), &from.SecretRef)
		if err != nil {
			return nil, nil, err
		}
		query.Set(from.Name, value)
	}
	if len(with.QueryFrom) > 0 {
		request.URL.RawQuery = query.Encode()
	}
	return request, secrets, nil
}

// encodedForms returns the forms in which a response may repeat a value: plain, in a JSON string
// and in a URL.
func encodedForms(value []byte) [][]byte {
	all := [][]byte{value, []byte(url.QueryEscape(string(value))), []byte(url.PathEscape(string(value)))}
	var text bytes.Buffer
	for _, html := range []bool{true, false} {
		text.Reset()
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(html)
		_ = e.Encode(string(value)) // never fails for a string
		quoted := bytes.TrimSpace(text.Bytes())
		all = append(all, bytes.Clone(quoted[1:len(quoted)-1]))
	}
	return all
}

// check returns an error if the response is not the expected one. The error contains the beginning
// of the response only in a local run: the author of a WorkflowRun may not be allowed to read what
// the daemon can reach.
func (e *HTTPExpect) check(response *http.Response, kept *body, local bool) error {
	expected := slices.Contains(e.Status, response.StatusCode)
	if len(e.Status) == 0 {
		expected = response.StatusCode/100 == 2
	}
	said := ""
	if local {
		said = strings.ToValidUTF8(string(kept.beginning[:min(len(kept.beginning), httpBodyError)]), "")
	}
	if said = redact.Message(strings.Join(strings.Fields(said), " ")); said != "" {
		said = ": " + said
	}
	if !expected {
		err := fmt.Errorf("the response is %s%s", response.Status, said)
		if response.StatusCode/100 == 4 && response.StatusCode != http.StatusRequestTimeout && response.StatusCode != http.StatusTooManyRequests {
			return task.Final(err)
		}
		return err
	}
	if !kept.found {
		return fmt.Errorf("the response does not contain %q%s", e.BodyContains, said)
	}
	return nil
}

// Undo returns a KeptError if the request may have changed something: the inverse is another
// request, which the manifest defines as undo.
func (h *Kind) Undo(_ context.Context, c *task.Call) error {
	if !h.Irreversible(c.With) {
		return nil
	}
	return &task.KeptError{Reason: "a request has no built-in inverse, and the task sets no undo"}
}

// Irreversible reports whether a request may have changed something.
func (*Kind) Irreversible(with json.RawMessage) bool {
	var w With
	_ = json.Unmarshal(with, &w) // unreadable inputs count as a change
	switch w.Method {
	case "", http.MethodGet, http.MethodHead:
		return w.URL == ""
	default:
		return true
	}
}

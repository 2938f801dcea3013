package providers

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	ctlconfig "sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"

	"scute.dev/workflow/task"
)

const (
	gitHub    = "https://github.com/"
	gitHubAPI = "https://api.github.com/repos/"
)

// gitHubRepository replaces clusterctl's GitHub repository, which shares its cache between
// namespaces, reads responses without a limit, and retries for a minute.
type gitHubRepository struct {
	files
	name       string // OWNER/REPOSITORY
	version    string
	components string
	token      string
}

func (f files) gitHub(u *url.URL, provider ctlconfig.Provider, config ctlconfig.Client) (repository.Repository, error) {
	// https://github.com/OWNER/REPOSITORY/releases/VERSION/FILE
	parts := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	if u.User != nil || len(parts) != 5 || parts[2] != "releases" {
		return nil, task.Final(fmt.Errorf("with.config: the URL of %s is not the URL of a GitHub release: write it as "+
			"%sOWNER/REPOSITORY/releases/VERSION/FILE", provider.Name(), gitHub))
	}
	return gitHubRepository{files: f, name: path.Join(parts[:2]...), version: parts[3], components: parts[4], token: token(config, ctlconfig.GitHubTokenVariable)}, nil
}

// DefaultVersion returns the version in the URL. It is not used, because tasks name a version.
func (r gitHubRepository) DefaultVersion() string { return r.version }

// RootPath returns the directory of the files: a release has only one.
func (r gitHubRepository) RootPath() string { return "." }

func (r gitHubRepository) ComponentsPath() string { return r.components }

// GetFile reads a file of a release without authentication, or with the token if the file is not found.
func (r gitHubRepository) GetFile(ctx context.Context, version, file string) ([]byte, error) {
	content, err := r.get(ctx, gitHub+r.name+"/releases/download/"+url.PathEscape(version)+"/"+url.PathEscape(file), nil)
	if err == nil || !errors.Is(err, errNotFound) {
		return content, err
	}
	if r.token == "" {
		return nil, fmt.Errorf("%w: use a release that has the file; a private repository needs %s in the Secret of with.variablesFrom", err,
			ctlconfig.GitHubTokenVariable)
	}
	header := http.Header{"Authorization": {"Bearer " + r.token}, "Accept": {"application/vnd.github+json"}}
	answer, err := r.get(ctx, gitHubAPI+r.name+"/releases/tags/"+url.PathEscape(version), header)
	if err != nil {
		return nil, fmt.Errorf("%w: use a released version, and a %s with access to it", err, ctlconfig.GitHubTokenVariable)
	}
	var release struct {
		Assets []struct {
			ID   int64  `json:"id"`
			Name string `json:"name"`
		} `json:"assets"`
	}
	if err := json.Unmarshal(answer, &release); err != nil {
		return nil, fmt.Errorf("reading release %s of %s%s: %w", version, gitHub, r.name, err)
	}
	for _, asset := range release.Assets {
		if asset.Name == file {
			header.Set("Accept", "application/octet-stream")
			return r.get(ctx, fmt.Sprintf("%s%s/releases/assets/%d", gitHubAPI, r.name, asset.ID), header)
		}
	}
	return nil, fmt.Errorf("release %s of %s%s has no file %s", version, gitHub, r.name, file)
}

var tag = regexp.MustCompile(`refs/tags/(v[0-9][0-9A-Za-z.+-]*)\n`)

// GetVersions returns the tags that are versions. It uses git's protocol, which needs no token and
// has no rate limit.
func (r gitHubRepository) GetVersions(ctx context.Context) ([]string, error) {
	from := gitHub + r.name + ".git/info/refs?service=git-upload-pack"
	answer, err := r.get(ctx, from, nil)
	if errors.Is(err, errNotFound) && r.token != "" {
		login := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + r.token))
		answer, err = r.get(ctx, from, http.Header{"Authorization": {"Basic " + login}})
	}
	if err != nil {
		return nil, err
	}
	var versions []string
	for _, m := range tag.FindAllSubmatch(answer, -1) {
		if _, err := version.ParseSemantic(string(m[1])); err == nil {
			versions = append(versions, string(m[1]))
		}
	}
	return versions, nil
}

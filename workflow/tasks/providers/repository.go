package providers

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	ctlcluster "sigs.k8s.io/cluster-api/cmd/clusterctl/client/cluster"
	ctlconfig "sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"

	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/task/inputs"
	"scute.dev/workflow/tasks/internal/web"
)

const (
	// repositoryFile bounds a file that is read from a GitLab repository, repositoryWithin the time that it takes.
	repositoryFile   = 32 << 20
	repositoryWithin = time.Minute
	// repositoryTurn is how often a reader looks whether it is its turn.
	repositoryTurn = 20 * time.Millisecond
)

var _ ctlcluster.RepositoryClientFactory = (&Kind{}).repository

// repository opens a repository for clusterctl's library. In the daemon it is the last word on where that may read from,
// however the configuration was written: by https alone, and not what a task HTTP may not reach either.
func (p *Kind) repository(ctx context.Context, provider ctlconfig.Provider, config ctlconfig.Client, options ...repository.Option) (repository.Client, error) {
	u, err := url.Parse(provider.URL())
	if err != nil {
		return nil, task.Final(fmt.Errorf("with.config: the URL of %s cannot be parsed", provider.Name()))
	}
	var read repository.Repository
	switch {
	case u.Scheme == "https" && u.Host == "github.com":
		read, err = p.gitHub(ctx, provider, config)
	case u.Scheme == "https":
		read, err = p.gitLab(ctx, u, provider, config)
	case !p.Clusters.Local:
		err = task.Final(fmt.Errorf("with.config: the URL of %s is not one of https: the daemon reads repositories by https alone", provider.Name()))
	default:
		return repository.New(ctx, provider, config, options...)
	}
	if err != nil {
		return nil, err
	}
	return repository.New(ctx, provider, config, append(options, repository.InjectRepository(read), repository.InjectYamlProcessor(inputs.NewProcessor()))...)
}

// gitHubRepository is the library's, which keeps what it has read in maps that two readers at once would break.
type gitHubRepository struct {
	repository.Repository
	reading *sync.Mutex
}

func (p *Kind) gitHub(ctx context.Context, provider ctlconfig.Provider, config ctlconfig.Client) (repository.Repository, error) {
	read, err := inTurn(ctx, &p.reading, func() (repository.Repository, error) {
		return repository.NewGitHubRepository(ctx, provider, config.Variables())
	})
	if err != nil {
		return nil, err
	}
	return gitHubRepository{Repository: read, reading: &p.reading}, nil
}

// GetFile reads a file of a release.
func (r gitHubRepository) GetFile(ctx context.Context, version, path string) ([]byte, error) {
	return inTurn(ctx, r.reading, func() ([]byte, error) { return r.Repository.GetFile(ctx, version, path) })
}

// GetVersions lists the releases.
func (r gitHubRepository) GetVersions(ctx context.Context) ([]string, error) {
	return inTurn(ctx, r.reading, func() ([]string, error) { return r.Repository.GetVersions(ctx) })
}

// inTurn reads when no other does.
func inTurn[T any](ctx context.Context, reading *sync.Mutex, read func() (T, error)) (T, error) {
	for !reading.TryLock() {
		if err := access.Sleep(ctx, repositoryTurn); err != nil {
			var none T
			return none, err
		}
	}
	defer reading.Unlock()
	return read()
}

// gitLabRepository is the library's but for the reading: its host may be anybody's, and so may what it redirects to.
type gitLabRepository struct {
	repository.Repository
	packages string
	token    string
	clusters *access.Clusters
}

func (p *Kind) gitLab(ctx context.Context, u *url.URL, provider ctlconfig.Provider, config ctlconfig.Client) (repository.Repository, error) {
	// https://HOST/api/v4/projects/PROJECT/packages/generic/PACKAGE/VERSION/FILE
	parts := strings.Split(u.EscapedPath(), "/")
	if !strings.HasPrefix(u.Host, "gitlab.") || u.User != nil || len(parts) != 10 {
		return nil, task.Final(fmt.Errorf("with.config: the URL of %s is none of GitHub's releases or GitLab's generic packages: give one of these", provider.Name()))
	}
	read, err := repository.NewGitLabRepository(ctx, provider, config.Variables())
	if err != nil {
		return nil, task.Final(err)
	}
	token, err := config.Variables().Get(ctlconfig.GitLabAccessTokenVariable)
	if err != nil {
		token = "" // a public repository
	}
	return gitLabRepository{Repository: read, packages: "https://" + u.Host + strings.Join(parts[:8], "/"), token: token, clusters: p.Clusters}, nil
}

// GetFile reads a file of a package.
func (r gitLabRepository) GetFile(ctx context.Context, version, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, repositoryWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.packages+"/"+version+"/"+path, http.NoBody)
	if err != nil {
		return nil, task.Final(fmt.Errorf("with: %s of version %s cannot be asked for", path, version))
	}
	if r.token != "" {
		request.Header.Set("Authorization", "Bearer "+r.token)
	}
	client := web.NewClient(r.clusters)
	client.CheckRedirect = web.ByHTTPS // to where the files are kept; there the token does not go
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return nil, web.Error(request, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: the answer is %s", web.Asked(request), response.Status)
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, repositoryFile+1))
	if err != nil {
		return nil, web.Error(request, err)
	}
	if len(content) > repositoryFile {
		return nil, task.Final(fmt.Errorf("%s: the file is larger than %d MiB", web.Asked(request), repositoryFile>>20))
	}
	return content, nil
}

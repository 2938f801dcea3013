package providers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	ctlcluster "sigs.k8s.io/cluster-api/cmd/clusterctl/client/cluster"
	ctlconfig "sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"

	"scute.dev/kube/document"
	"scute.dev/kube/guard"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

const (
	// maxFileBytes limits the size of a file, and fileTimeout the time for reading it.
	maxFileBytes = 8 << 20
	fileTimeout  = time.Minute
)

// repositories returns a factory of repositories for clusterctl's library. However the
// configuration is written, the daemon uses only https, and only addresses that an HTTP task may
// reach.
//
// Files are not cached for other tasks, because they may have been read with the token of another
// namespace.
func (p *Kind) repositories(namespace string) ctlcluster.RepositoryClientFactory {
	return func(ctx context.Context, provider ctlconfig.Provider, config ctlconfig.Client, options ...repository.Option) (repository.Client, error) {
		u, err := url.Parse(provider.URL())
		if err != nil {
			return nil, task.Final(fmt.Errorf("with.config: the URL of %s cannot be parsed", provider.Name()))
		}
		var read repository.Repository
		switch from := (files{clusters: p.Clusters, namespace: namespace, transport: p.transport}); {
		case u.Scheme == "https" && u.Host == "github.com":
			read, err = from.gitHub(u, provider, config)
		case u.Scheme == "https":
			read, err = from.gitLab(ctx, u, provider, config)
		case !p.Clusters.Local:
			err = task.Final(fmt.Errorf("with.config: the URL of %s is not an https URL: the daemon can only read repositories over https", provider.Name()))
		}
		if err != nil {
			return nil, err
		}
		if read != nil {
			options = append(options, repository.InjectRepository(read))
		}
		opened, err := repository.New(ctx, provider, config, append(options, repository.InjectYamlProcessor(access.NewTemplateProcessor()))...)
		if err != nil {
			return nil, err
		}
		o := repositoryClient{Client: opened, provider: provider, config: config}
		if !p.Clusters.Local {
			o.remote = read
		}
		return o, nil
	}
}

// repositoryClient replaces the variables in components within the limits that apply to all
// templates.
type repositoryClient struct {
	repository.Client
	provider ctlconfig.Provider
	config   ctlconfig.Client
	// remote is set in the daemon and bypasses the library, which first reads an override: a file
	// on the daemon's machine, at a path that contains the version.
	remote repository.Repository
}

func (c repositoryClient) Metadata(version string) repository.MetadataClient {
	if c.remote == nil {
		return c.Client.Metadata(version)
	}
	return metadata{c.remote, version}
}

type metadata struct {
	remote  repository.Repository
	version string
}

func (m metadata) Get(ctx context.Context) (*clusterctlv1.Metadata, error) {
	text, err := m.remote.GetFile(ctx, m.version, "metadata.yaml")
	if err != nil {
		return nil, err
	}
	into := &clusterctlv1.Metadata{}
	if err := document.Unmarshal(text, into); err != nil {
		return nil, fmt.Errorf("reading metadata.yaml of %s: %w", m.version, err)
	}
	return into, nil
}

func (c repositoryClient) Components() repository.ComponentsClient {
	return components{ComponentsClient: c.Client.Components(), parent: c}
}

type components struct {
	repository.ComponentsClient
	parent repositoryClient
}

func (c components) Raw(ctx context.Context, options repository.ComponentsOptions) ([]byte, error) {
	remote := c.parent.remote
	if remote == nil {
		return c.ComponentsClient.Raw(ctx, options)
	}
	return remote.GetFile(ctx, cmp.Or(options.Version, remote.DefaultVersion()), remote.ComponentsPath())
}

func (c components) Get(ctx context.Context, options repository.ComponentsOptions) (repository.Components, error) {
	raw, err := c.Raw(ctx, options)
	if err != nil {
		return nil, err
	}
	return repository.NewComponents(repository.ComponentsInput{
		Provider: c.parent.provider, ConfigClient: c.parent.config, Processor: access.NewTemplateProcessor(), RawYaml: raw, Options: options,
	})
}

type files struct {
	clusters  *access.Clusters
	namespace string
	transport http.RoundTripper
}

// errNotFound means that a server has no such file, or denies access to it.
var errNotFound = errors.New("the file does not exist, or access is denied")

// get reads a file. Namespaces take turns in reading large files.
func (f files) get(ctx context.Context, from string, header http.Header) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fileTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, http.NoBody)
	if err != nil {
		return nil, task.Final(errors.New("with: the URL of a repository is invalid"))
	}
	request.Header = header
	client := f.clusters.HTTPClient()
	defer client.CloseIdleConnections()
	client.CheckRedirect = access.HTTPSOnly // redirects to the file server, which does not get the token
	if f.transport != nil {
		client.Transport = f.transport
	}
	var turns *guard.Guard
	if f.clusters != nil {
		turns = f.clusters.Guard
	}
	client.Transport = turns.Bound(client.Transport, f.namespace, maxFileBytes)
	response, err := client.Do(request)
	if err != nil {
		return nil, access.RequestError(request, err)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusUnauthorized, http.StatusForbidden:
		return nil, fmt.Errorf("%s: the response is %s: %w", access.DescribeRequest(request), response.Status, errNotFound)
	default:
		return nil, fmt.Errorf("%s: the response is %s", access.DescribeRequest(request), response.Status)
	}
	content, err := io.ReadAll(response.Body)
	if err == nil {
		err = document.CheckBounds(content)
	}
	if err != nil {
		return nil, access.RequestError(request, err)
	}
	return content, nil
}

// gitLabRepository wraps the library's repository, and reads files within the limits.
type gitLabRepository struct {
	repository.Repository
	files
	packages string
	header   http.Header
}

func (f files) gitLab(ctx context.Context, u *url.URL, provider ctlconfig.Provider, config ctlconfig.Client) (repository.Repository, error) {
	// https://HOST/api/v4/projects/PROJECT/packages/generic/PACKAGE/VERSION/FILE
	parts := strings.Split(u.EscapedPath(), "/")
	if !strings.HasPrefix(u.Host, "gitlab.") || u.User != nil || len(parts) != 10 {
		return nil, task.Final(fmt.Errorf("with.config: the URL of %s is neither a GitHub release nor a GitLab generic package: use one of these",
			provider.Name()))
	}
	read, err := repository.NewGitLabRepository(ctx, provider, config.Variables())
	if err != nil {
		return nil, task.Final(err)
	}
	header := http.Header{}
	if token := token(config, ctlconfig.GitLabAccessTokenVariable); token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	return gitLabRepository{Repository: read, files: f, packages: "https://" + u.Host + strings.Join(parts[:8], "/"), header: header}, nil
}

// token returns the token for a repository, or "" for a public one. Like clusterctl, it accepts the
// names github-token and GITHUB_TOKEN.
func token(config ctlconfig.Client, name string) string {
	for _, key := range []string{name, strings.ToUpper(strings.ReplaceAll(name, "-", "_"))} {
		if value, err := config.Variables().Get(key); err == nil {
			return value
		}
	}
	return ""
}

func (r gitLabRepository) GetFile(ctx context.Context, version, path string) ([]byte, error) {
	return r.get(ctx, r.packages+"/"+version+"/"+path, r.header)
}

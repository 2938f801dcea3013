package embedded

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
)

// Role is a set of permissions for clients of the log's listener.
type Role string

// Roles.
const (
	// Reader may read and follow the log.
	Reader Role = "reader"
	// Operator may do what Reader may do, and append.
	Operator Role = "operator"
)

// Roles returns all roles, the least privileged first.
func Roles() []Role { return []Role{Reader, Operator} }

// Access authenticates clients of an embedded log's listener by the tokens of their roles. Until
// tokens are set, only this process may connect. An Access serves one log and is safe for
// concurrent use.
type Access struct {
	// Accept returns an error for a commit that no role may append. The aggregate is zero if the
	// subject is not that of an aggregate. Set Accept before use; nil accepts all commits.
	Accept func(of eventlog.Aggregate, events []eventlog.Event) error

	mu       sync.Mutex
	ownToken fingerprint // the token of this process
	tokens   map[Role]fingerprint
	server   *server.Server
	accounts map[Role]*server.Account // set once the server runs
	// connected maps each connection to its token. Ended connections are removed later.
	connected map[uint64]fingerprint
}

// fingerprint is the hash of a token. The time that a comparison of hashes takes does not depend on
// the token.
type fingerprint [sha256.Size]byte

var _ server.Authentication = (*Access)(nil)

// Set sets the token of a role. With "", no client gets the role. Connections with the previous
// token are closed. Their clients reconnect with the new token and resume.
func (a *Access) Set(role Role, token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, had := a.tokens[role]
	if a.tokens == nil {
		a.tokens = make(map[Role]fingerprint)
	}
	delete(a.tokens, role)
	if token != "" {
		a.tokens[role] = sha256.Sum256([]byte(token))
	}
	if had && a.tokens[role] != before {
		a.disconnect(before)
	}
}

// disconnect closes the connections with a token. The caller must hold mu.
func (a *Access) disconnect(token fingerprint) {
	for id, by := range a.connected {
		if by == token {
			_ = a.server.DisconnectClientByID(id) // fails if the connection has ended
			delete(a.connected, id)
		}
	}
}

func (a *Access) newOwnToken() string {
	token := rand.Text()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ownToken = sha256.Sum256([]byte(token))
	return token
}

// setServer creates the accounts of the roles. From then on, clients with the token of a role can
// connect.
func (a *Access) setServer(srv *server.Server) error {
	accounts, err := newAccounts(srv)
	if err != nil {
		return fmt.Errorf("preparing the accounts of the roles: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.server, a.accounts = srv, accounts
	return nil
}

// Check implements server.Authentication.
func (a *Access) Check(c server.ClientAuthentication) bool {
	token := fingerprint(sha256.Sum256([]byte(c.GetOpts().Token)))
	a.mu.Lock()
	defer a.mu.Unlock()
	if token == a.ownToken {
		return true
	}
	for _, role := range Roles() {
		if is, ok := a.tokens[role]; ok && token == is && a.server != nil {
			a.recordConnection(c.GetID(), token)
			c.RegisterUser(&server.User{Username: string(role), Account: a.accounts[role], Permissions: role.permissions()})
			return true
		}
	}
	return false
}

// pruneThreshold is the number of recorded connections from which on recordConnection removes
// connections that have ended.
const pruneThreshold = 64

// recordConnection records the token of a connection. The caller must hold mu.
func (a *Access) recordConnection(id uint64, token fingerprint) {
	if len(a.connected) >= pruneThreshold {
		for id := range a.connected {
			if a.server.GetClient(id) == nil {
				delete(a.connected, id)
			}
		}
	}
	if a.connected == nil {
		a.connected = make(map[uint64]fingerprint)
	}
	a.connected[id] = token
}

const logPrefix = "scute.log"

const nextMessages = "$JS.API.CONSUMER.MSG.NEXT.*.*"

// requests returns the subjects on which a role may publish. The stream is a wildcard because the
// server has no other stream.
func (r Role) requests() (subjects []string) {
	subjects = []string{
		"$JS.API.STREAM.INFO.*", "$JS.API.STREAM.MSG.GET.*", "$JS.API.DIRECT.GET.*", "$JS.API.DIRECT.GET.*.>",
		createConsumer, nextMessages,
	}
	if r == Operator {
		subjects = append(subjects, logPrefix+".*.*")
	}
	return subjects
}

func (r Role) permissions() *server.Permissions {
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: r.requests()},
		Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
	}
}

// newAccounts creates a separate account for each role, which imports only the role's requests. The
// reason is that the server publishes each answer with its own permissions, on the subject that the
// client names. In the account of the log, a client could name a subject of the log, or the subject
// of a request that deletes the log. In a separate account, the answer reaches only clients with
// the role.
func newAccounts(srv *server.Server) (map[Role]*server.Account, error) {
	log, accounts := srv.GlobalAccount(), make(map[Role]*server.Account)
	for _, role := range Roles() {
		account, err := srv.RegisterAccount("SCUTE_" + string(role))
		if err != nil {
			return nil, err
		}
		accounts[role] = account
		for _, subject := range role.requests() {
			// The server deletes the reply mapping after the answer, or after minutes if there may
			// be several answers.
			to, answers := subject, server.Singleton
			switch commits, ok := strings.CutPrefix(subject, logPrefix); {
			case ok:
				to = appendPrefix + commits
			case subject == createConsumer:
				to = gateSubject
			case subject == nextMessages:
				answers = server.Streamed
			}
			if err := log.AddServiceExportWithResponse(to, answers, nil); err != nil {
				return nil, fmt.Errorf("%s: %w", to, err)
			}
			if err := account.AddServiceImport(log, subject, to); err != nil {
				return nil, fmt.Errorf("%s: %w", subject, err)
			}
		}
	}
	return accounts, nil
}

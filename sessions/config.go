package sessions

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"cellblock/egress"
	"cellblock/internal/fault"
	"cellblock/kernels"
)

// Owner is who a session belongs to: the issuer and the subject of the caller's verified token.
type Owner struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
}

// Key is one text in which no two owners are equal.
func (o Owner) Key() string { return o.Issuer + "\x00" + o.Subject }

// Runtime is what cells of a language run as.
type Runtime struct {
	Kernelspec kernels.Kernelspec
	// Online is added to the environment of kernels whose profile has a network.
	Online map[string]string
	// Title is how people write the language, Note what models should know of its kernel, Endings how names of its scripts end
	// (images.Language).
	Title, Note string
	Endings     []string
	// Image is what the kernel runs in; provisioners without images ignore it.
	Image string
	// Variables is the expression that describes what the user has defined (images.Language). Empty: it cannot be told.
	Variables string
	// Save, Load and Checkpoint are the expressions that save what the user has defined, and have it back (images.Language). Empty: it
	// cannot be saved, or not while the kernel goes on.
	Save, Load, Checkpoint string
	// RunFile is the code that runs a file (images.Language). Empty: there is none.
	RunFile string
	// IdleTimeout and MaxLife are those of Config for kernels of this language; 0: as there.
	IdleTimeout, MaxLife time.Duration
}

// Config says how a Manager works. Provisioner, Runtimes and DataDir are required; a zero value elsewhere means the
// default.
type Config struct {
	// Provisioner launches kernels. The Manager does not close it.
	Provisioner kernels.Provisioner
	// Runtimes are the languages that can be run, by name: "python".
	Runtimes map[string]Runtime
	// Profiles are what sessions can run under, by name. DefaultProfile is always there.
	Profiles map[string]Profile
	// Image checks that an owner's sessions of a language may run in an image which a call names, and returns what the
	// provisioner knows it by. Nil: they may run in the language's own only.
	Image func(ctx context.Context, o Owner, language, name string) (string, error)
	// ImageName is what an owner calls such an image, to be shown. It must not wait for anything. Nil: what the provisioner does.
	ImageName func(o Owner, image string) string
	// Gateway connects what kernels want to reach, by their profiles' Network. Nil: nothing is reached, whatever that says.
	Gateway *egress.Gateway
	// Authorities are certificates (PEM) that kernels with a network trust besides their image's.
	Authorities string
	// DataDir holds the workspaces, in its folder "workspaces".
	DataDir string
	// DefaultTimeout is how long a cell may run when its request does not say (600 s), MaxTimeout the most that a request
	// may ask for (3,600 s).
	DefaultTimeout, MaxTimeout time.Duration
	// Grace is how long each rung of the interrupt ladder waits for the cell to end (5 s).
	Grace time.Duration
	// MintedIdle is how long a session with a minted id waits for a second call before it is closed (5 min).
	MintedIdle time.Duration
	// IdleTimeout is how long a kernel waits for its next cell before it is culled (30 min), MaxLife how long it may live in
	// all (24 h). Negative: for ever.
	IdleTimeout, MaxLife time.Duration
	// SaveVariables has kernels that are culled save their variables, where their language can, and the next ones load them.
	SaveVariables bool
	// CheckpointAfter is how long cells have run together before their kernel saves its variables also while it goes on, for the case that
	// it dies, where its language can. 0: it does not.
	CheckpointAfter time.Duration
	// Guest tells that another process may come first on this store. Sessions that such a one has left are taken over where
	// they are asked for by name, and not because somebody asks for a list: it may come back for them.
	Guest bool
	// Unattended is how long a kernel goes on while no server is there (24 h). Negative: for ever.
	Unattended time.Duration
	// PromptTimeout is how long a cell that called input() waits for its user (5 min).
	PromptTimeout time.Duration
	// PoolSize is how many kernels of each language that is used are kept ready for sessions to come (StartPool).
	PoolSize int
	// PoolPreload are modules that pooled Python kernels have imported already.
	PoolPreload []string
	// MaxSessionsPerOwner and MaxSessions bound the sessions that have a kernel (20, 100), MaxWaiting the cells that wait and
	// MaxRunning those that run, of all sessions (1,000, 100). Negative: no limit.
	MaxSessionsPerOwner, MaxSessions, MaxWaiting, MaxRunning int
	// MinFreeMemory is what this host must have free for another kernel, in bytes (512 MiB). Negative: it is not asked.
	MinFreeMemory int64
	// WorkspaceBytes is how much a workspace may hold (10 GiB): a cell that makes it more is interrupted. Negative: it is not
	// measured.
	WorkspaceBytes int64
	// MaxQueue bounds the waiting cells of one session (32). Negative: no limit.
	MaxQueue int
	// Store keeps what sessions did when they are gone. The Manager does not close it. Without one, that is kept in memory
	// while the session runs.
	Store Store
	// RecordBytes bounds the outputs that are kept of one cell, in bytes (256 MiB with a Store, else 64 MiB); of more,
	// head and tail are kept.
	RecordBytes int64
	// Ended is told of every cell that has ended, or never will run, in the order in which they do within a session, and before
	// anybody who waits for the cell. It must not wait for anything, the cell among it. Nil: nobody is told.
	Ended func(Owner, *Execution)
	// Logger gets what operators should know. It is never given code or outputs. Nil means slog.Default.
	Logger *slog.Logger
}

// MaxCode is the most code that one cell may have, in bytes.
const MaxCode = 1 << 20

func (c Config) withDefaults() (Config, error) {
	if c.Provisioner == nil || len(c.Runtimes) == 0 || c.DataDir == "" {
		return c, errors.New("sessions: Config needs Provisioner, Runtimes and DataDir")
	}
	setDefault(&c.DefaultTimeout, 600*time.Second)
	setDefault(&c.MaxTimeout, max(time.Hour, c.DefaultTimeout))
	setDefault(&c.Grace, 5*time.Second)
	setDefault(&c.MintedIdle, 5*time.Minute)
	setDefault(&c.IdleTimeout, 30*time.Minute)
	setDefault(&c.MaxLife, 24*time.Hour)
	setDefault(&c.Unattended, 24*time.Hour)
	setDefault(&c.PromptTimeout, 5*time.Minute)
	setDefault(&c.MaxSessionsPerOwner, 20)
	setDefault(&c.MaxSessions, 100)
	setDefault(&c.MaxWaiting, 1000)
	setDefault(&c.MaxRunning, 100)
	setDefault(&c.MinFreeMemory, 512<<20)
	setDefault(&c.WorkspaceBytes, 10<<30)
	setDefault(&c.MaxQueue, 32)
	if c.Store != nil {
		setDefault(&c.RecordBytes, 256<<20)
	}
	setDefault(&c.RecordBytes, 64<<20)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.DefaultTimeout = min(c.DefaultTimeout, c.MaxTimeout)
	return c.withProfiles(), nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// SavesVariables tells whether kernels of a language that are culled save their variables, for the next one of their session.
func (c Config) SavesVariables(language string) bool {
	return c.SaveVariables && c.Runtimes[language].Save != ""
}

// NameOfImage is what an owner calls the image of a session of his (Choice.Image), which he can name in calls.
func (c Config) NameOfImage(o Owner, image string) string {
	if image == "" || c.ImageName == nil {
		return image
	}
	return c.ImageName(o, image)
}

// IdleTimeoutOf is how long a kernel of a language waits for its next cell before it is culled. Negative: for ever.
func (c Config) IdleTimeoutOf(language string) time.Duration {
	return cmp.Or(c.Runtimes[language].IdleTimeout, c.IdleTimeout)
}

// maxLifeOf is how long a kernel of a language may live. Negative: for ever.
func (c Config) maxLifeOf(language string) time.Duration {
	return cmp.Or(c.Runtimes[language].MaxLife, c.MaxLife)
}

// language checks a request's language; empty means the only one there is.
func (c Config) language(name string) (string, error) {
	known := slices.Sorted(maps.Keys(c.Runtimes))
	if name == "" && len(known) == 1 {
		return known[0], nil
	}
	if _, ok := c.Runtimes[name]; !ok {
		return "", fault.New(fault.Invalid, "language: %q is not one of %s", clip(name, 40), strings.Join(known, ", "))
	}
	return name, nil
}

package access

import (
	"errors"
	"io/fs"
	"os"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
)

// MemoryLimit is the memory limit of stores that the command opens, in bytes.
const MemoryLimit = 256 << 20

// WithStore calls use with an existing store. Commands that only read open it as followers, so they
// work next to a writer.
func WithStore(dir string, at Mode, use func(*oribi.Store) error) error {
	return WithOptions(dir, at, oribi.Options{}, use)
}

// WithOptions is WithStore with options, to which it adds those that the command always uses.
func WithOptions(dir string, at Mode, o oribi.Options, use func(*oribi.Store) error) (err error) {
	o.ErrorIfMissing, o.MemoryLimit, o.Follow = true, MemoryLimit, at.readOnly
	var store *oribi.Store
	err = at.Open(func() (err error) {
		store, err = oribi.Open(dir, &o)
		return err
	})
	if err != nil {
		if _, missing := os.Stat(dir); !o.Follow && errors.Is(missing, fs.ErrNotExist) {
			return exit.WithHelp(err, "to create a store: oribi store init "+dir)
		}
		return DamageHint(dir, err)
	}
	defer func() { err = DamageHint(dir, errors.Join(err, store.Close())) }()
	return use(store)
}

// WithTable opens an existing table.
func WithTable(dir, name string, at Mode, use func(*oribi.Table) error) error {
	return WithStore(dir, at, func(store *oribi.Store) error {
		table, err := OpenTable(store, name)
		if err != nil {
			return err
		}
		return use(table)
	})
}

// OpenTable opens an existing table. The error for a missing one in an empty store says how to
// create a table.
func OpenTable(store *oribi.Store, name string) (*oribi.Table, error) {
	t, err := store.Table(name)
	if errors.Is(err, oribi.ErrNoTable) && len(store.Tables()) == 0 {
		err = exit.WithHelp(err, "the store has no tables; to create one from a file: oribi table load DIR NAME FILE "+
			"--create --key COLUMN")
	}
	return t, err
}

// DamageHint suggests what to do about a damaged store.
func DamageHint(dir string, err error) error {
	_, hinted := errors.AsType[*exit.Helped](err)
	_, other := errors.AsType[*exit.Failure](err) // of an input
	if hinted || other || !errors.Is(err, oribi.ErrCorrupt) {
		return err
	}
	return exit.WithHelp(err, "keep a copy of "+dir+"; oribi store verify "+dir+
		" lists what is damaged; restore a backup, or save what can be read: oribi store salvage "+dir+" OUT")
}

package cli

import (
	"errors"
	"io/fs"
	"os"

	"github.com/oribi-db/oribi"
)

// memoryLimit is the memory limit of stores that the command opens, in bytes.
const memoryLimit = 256 << 20

// withStore calls use with an existing store. Commands that only read open it as followers, so they
// work next to a writer.
func withStore(dir string, at access, use func(*oribi.Store) error) error {
	return withOptions(dir, at, oribi.Options{}, use)
}

// withOptions is withStore with options, to which it adds those that the command always uses.
func withOptions(dir string, at access, o oribi.Options, use func(*oribi.Store) error) (err error) {
	o.ErrorIfMissing, o.MemoryLimit, o.Follow = true, memoryLimit, at.readOnly
	var store *oribi.Store
	err = at.open(func() (err error) {
		store, err = oribi.Open(dir, &o)
		return err
	})
	if err != nil {
		if _, missing := os.Stat(dir); !o.Follow && errors.Is(missing, fs.ErrNotExist) {
			return withHelp(err, "to create a store: oribi store init "+dir)
		}
		return damageHint(dir, err)
	}
	defer func() { err = damageHint(dir, errors.Join(err, store.Close())) }()
	return use(store)
}

// withTable opens an existing table.
func withTable(dir, name string, at access, use func(*oribi.Table) error) error {
	return withStore(dir, at, func(store *oribi.Store) error {
		table, err := openTable(store, name)
		if err != nil {
			return err
		}
		return use(table)
	})
}

// openTable opens an existing table. The error for a missing one in an empty store says how to
// create a table.
func openTable(store *oribi.Store, name string) (*oribi.Table, error) {
	t, err := store.Table(name)
	if errors.Is(err, oribi.ErrNoTable) && len(store.Tables()) == 0 {
		err = withHelp(err, "the store has no tables; to create one from a file: oribi table load DIR NAME FILE "+
			"--create --key COLUMN")
	}
	return t, err
}

// damageHint suggests what to do about a damaged store.
func damageHint(dir string, err error) error {
	_, hinted := errors.AsType[*helped](err)
	_, other := errors.AsType[*failure](err) // of an input
	if hinted || other || !errors.Is(err, oribi.ErrCorrupt) {
		return err
	}
	return withHelp(err, "keep a copy of "+dir+"; oribi store verify "+dir+
		" lists what is damaged; restore a backup, or save what can be read: oribi store salvage "+dir+" OUT")
}

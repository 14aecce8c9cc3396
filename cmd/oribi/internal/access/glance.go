package access

import (
	"time"

	"github.com/oribi-db/oribi"
)

// longestGlance is how long a completion may take.
const longestGlance = time.Second

// Glance calls look with the store that the first argument names, if it can be opened quickly. If
// the store is locked, damaged, missing, or has a long log to replay, glance silently does nothing.
func Glance(args []string, look func(*oribi.Store)) {
	if len(args) == 0 {
		return
	}
	opened := make(chan *oribi.Store, 1)
	go func() {
		store, err := oribi.Open(args[0], &oribi.Options{Follow: true, MemoryLimit: MemoryLimit})
		if err == nil {
			opened <- store
		}
		close(opened)
	}()
	select {
	case store := <-opened:
		if store != nil {
			look(store)
			store.Close() // reading is complete: an error of Close does not matter
		}
	case <-time.After(longestGlance):
		// The process exits shortly, which ends the opening too.
	}
}

// TableNames returns the names of the tables of the store that the first argument names.
func TableNames(args []string) (list []string) {
	Glance(args, func(store *oribi.Store) {
		for _, t := range store.Tables() {
			list = append(list, t.Name())
		}
	})
	return list
}

// ColumnNames returns the names of the columns of the table that the first two arguments name.
func ColumnNames(args []string) (list []string) {
	Glance(args, func(store *oribi.Store) {
		if len(args) < 2 {
			return
		}
		if t, err := store.Table(args[1]); err == nil {
			for _, c := range t.Schema().Columns {
				list = append(list, c.Name)
			}
		}
	})
	return list
}

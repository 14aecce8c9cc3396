package oribi

import (
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/storeinfo"
)

// Info describes a store: its UUID, its size, and its open snapshots.
type Info = storeinfo.Info

// Sizes contains the bytes of a store by purpose.
type Sizes = storeinfo.Sizes

// Info returns the identity and the size of the store.
func (s *Store) Info() (Info, error) {
	if err := s.enter(); err != nil {
		return Info{}, err
	}
	defer s.leave()
	return s.core.Info(), nil
}

// Visible returns the newest published timestamp, which a read without AsOf sees.
func (s *Store) Visible() mvcc.Timestamp { return s.core.Visible() }

// ReadOnly reports whether the store was opened with Options.ReadOnly.
func (s *Store) ReadOnly() bool { return s.core.Writer == nil }

// Follows reports whether the store was opened with Options.Follow.
func (s *Store) Follows() bool { return s.core.Follows() }

// Dir returns the directory that was passed to Open or, if that is a symbolic link, where it leads.
func (s *Store) Dir() string { return s.core.Dir.Path }

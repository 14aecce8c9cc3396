package oribi

import "fmt"

// Close waits for running calls, makes everything durable, and unlocks the directory. Later calls
// return ErrClosed, and open iterators do at their next step. Close may be called twice.
func (s *Store) Close() error {
	if err := s.core.Close(); err != nil {
		return fmt.Errorf("oribi: %s: close: %w", s.core.Dir.Path, err)
	}
	return nil
}

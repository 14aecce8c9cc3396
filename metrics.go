package oribi

import "github.com/oribi-db/oribi/storeinfo"

// Metrics describes what a store has done since it was opened, and what it uses now.
type Metrics = storeinfo.Metrics

// The parts of Metrics.
type (
	JobMetrics         = storeinfo.JobMetrics
	MaintenanceMetrics = storeinfo.MaintenanceMetrics
	OperationMetrics   = storeinfo.OperationMetrics
	LogMetrics         = storeinfo.LogMetrics
	MemoryMetrics      = storeinfo.MemoryMetrics
	CacheMetrics       = storeinfo.CacheMetrics
	StallMetrics       = storeinfo.StallMetrics
	CommitMetrics      = storeinfo.CommitMetrics
	ReadMetrics        = storeinfo.ReadMetrics
	PinMetrics         = storeinfo.PinMetrics
	TableMetrics       = storeinfo.TableMetrics
	Histogram          = storeinfo.Histogram
)

// Metrics returns what the store has done and what it uses. It takes time in proportion to the
// number of blocks and rowsets, reads no file, and blocks no other call for longer than that.
func (s *Store) Metrics() (Metrics, error) {
	if err := s.enter(); err != nil {
		return Metrics{}, err
	}
	defer s.leave()
	return s.core.Metrics(), nil
}

// Package store is the engine of a store below its tables' rows: opening and closing, the order of
// write batches, the log that makes them durable, and the timestamps that reads pin. It knows
// tablets, the log, and the block manager, and neither rows nor options of package oribi.
package store

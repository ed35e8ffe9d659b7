package redisstore

// ClaimSource is the script that claims.
var ClaimSource = claimSource

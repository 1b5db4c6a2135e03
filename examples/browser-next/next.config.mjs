// Static files in `out`, for any server. Nothing here is for nacredb.
export default { output: 'export' };

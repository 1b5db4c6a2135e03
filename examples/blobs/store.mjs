// Where the database is: any S3 bucket that both programs reach. The environment says which.

/** The URL of the database in the bucket. */
export const url = process.env.BLOBS_URL ?? 's3://bucket/weather';

/** How the bucket is reached. Credentials are asked for when they are needed, and when they have expired. */
export const access = {
  endpoint: process.env.BLOBS_ENDPOINT,
  region: process.env.AWS_REGION,
  credentials: async () => ({
    accessKeyId: process.env.AWS_ACCESS_KEY_ID ?? '',
    secretAccessKey: process.env.AWS_SECRET_ACCESS_KEY ?? '',
    sessionToken: process.env.AWS_SESSION_TOKEN,
  }),
};
